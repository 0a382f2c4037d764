"""The doctor: looks a deployment over as an experienced colleague would, and says of each finding what to do."""
