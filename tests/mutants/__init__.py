"""Planted faults: does the suite of the day find what would cost users money, safety or data?"""
