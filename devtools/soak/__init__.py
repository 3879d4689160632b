"""`make soak`: sinks under a load that varies, for hours: does their memory, or anything else that they hold, grow?"""
