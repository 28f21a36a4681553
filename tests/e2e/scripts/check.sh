# clients/shell/memd-call (MEMD_CALL) from bash, zsh and fish alike, so it holds what all three understand.
# MEMD_TEST_EXPECT is a word that some memory of the project has, MEMD_TEST_SAVE a statement to save.
$MEMD_CALL status | grep -q '"version":' || exit 1
$MEMD_CALL memory.read "{\"cwd\":\"$PWD\",\"path\":\"no.md\"}" | grep -q '"code":1001' || exit 2
$MEMD_CALL memory.search "{\"cwd\":\"$PWD\",\"query\":\"$MEMD_TEST_EXPECT\"}" | grep -qi "$MEMD_TEST_EXPECT" || exit 3
$MEMD_CALL memory.write "{\"cwd\":\"$PWD\",\"path\":\"from-a-shell.md\",\"name\":\"from-a-shell\",\"description\":\"from a shell\",\"type\":\"project\",\"body\":\"Plovers land; it's said \\\"twice\\\".\"}" | grep -q '"path":"from-a-shell.md"' || exit 4
memctl show from-a-shell.md | grep -q "it's said \"twice\"." || exit 5
memctl rm --yes from-a-shell.md || exit 6
memctl add "$MEMD_TEST_SAVE" || exit 7
