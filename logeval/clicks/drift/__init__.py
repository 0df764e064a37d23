"""Users that change from day to day: click models by period, and whether they predict better."""
