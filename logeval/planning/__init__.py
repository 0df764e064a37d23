"""The experiment before the experiment: how many searches a comparison of two rankers needs."""
