"""What an audit leaves for the next one: summaries of segments, findings, and what was looked at.

A segment that is closed does not change, so that its rows of windows and folds are kept with a
stamp of its files (`kept_segments`). The next audit reads what is new or has changed, and takes the
kept rows of the rest (`kept_rows`). Under the URL of the state lie tables that grow by run, and the
rows of the last one (`run_tables`, `state_folder`).
"""
