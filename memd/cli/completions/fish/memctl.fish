# Completion of memctl, the command line of memd. The memctl that is here prints it, when it is first
# wanted in a shell, so that it is never that of another version.
memctl completion fish 2>/dev/null | source
