"""What surrounds the pages: one instance, the remembered window, tray, palette, logs, about."""
