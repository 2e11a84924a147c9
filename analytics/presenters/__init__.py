"""What is answered about sessions, requests and figures, in the words of the wire, one module per subject.

The management API puts it into its envelope of lists, the agent's tools into theirs.
"""
