"""The kit of the operators' pages: frame, navigation, streamed panels, tables, filters and formats."""
