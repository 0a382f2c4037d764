"""What the API views of all apps share: strict parsing, answers that caches understand, pages. Knows no app."""
