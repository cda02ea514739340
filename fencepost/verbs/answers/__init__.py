"""What the control API answers, as data: the one description that OpenAPI shows.

Names are the contract's: fields may be added, none renamed or removed. Log ends and high watermarks
are exclusive, all other offsets inclusive; times are milliseconds.
"""
