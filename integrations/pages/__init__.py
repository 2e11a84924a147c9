"""The pages of provider keys and prices. `integrations/admin.py` imports them."""
