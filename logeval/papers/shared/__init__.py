"""What the papers share: experiments, measures, verdicts, and how they are shown."""
