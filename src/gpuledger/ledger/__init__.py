"""2 REMEMBER: append and scan; rows never change."""
