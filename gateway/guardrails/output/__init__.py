"""What an answer may say: checks that hold for whole answers and, through a sliding window, for streams."""
