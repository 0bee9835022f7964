"""One file per vendor: a `TABLES` of its exception classes, by module and name, and how their facts are read.

A vendor's file is imported when the first exception of that vendor is met, and never imports the vendor.
"""
