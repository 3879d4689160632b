"""Tables that continue in a new one, after an offset reset or at columns that do not fit: `lake.a`, `lake.a_2`, …"""
