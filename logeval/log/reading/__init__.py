"""Files of any format -> the parts of the serps table."""
