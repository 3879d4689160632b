"""What Java and Joda-Time make of the texts of a connector: names in dates, and regular expressions."""
