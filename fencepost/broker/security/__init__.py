"""Rules of authorization, without connections and without the cluster's image."""
