"""The pages of what belongs to no other app: members and the audit log. `core/admin.py` imports them."""
