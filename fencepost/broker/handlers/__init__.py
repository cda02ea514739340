"""One module an API: ``handle`` answers a request, ``refuse`` answers it with one error code."""
