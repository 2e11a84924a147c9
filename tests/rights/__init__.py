"""Tests of rights: every operation and every page, with every role and with none, over two projects."""
