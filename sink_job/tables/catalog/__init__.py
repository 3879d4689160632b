"""How catalogs are reached: login, certificate authorities, proxy, and clients that send each request once."""
