"""Every text that a result gives: sentences on claims, a page's own words, captions, concepts."""
