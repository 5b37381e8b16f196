"""From-scratch networks of other people as networks of handgrad's layers: recognised, proved, compared, written."""
