# The console in a browser. The machine is busy while it runs: it has the machine for itself.
add_npm_test(console console node run.js)
set_tests_properties(console PROPERTIES LABELS console TIMEOUT 900 RUN_SERIAL TRUE)
