# The shipped rules for secret scanners.
add_measured_test(NAME secret_scanners COMMAND ${CMAKE_CURRENT_LIST_DIR}/check)
set_tests_properties(secret_scanners PROPERTIES TIMEOUT 900
  FAIL_REGULAR_EXPRESSION "LeakSanitizer;runtime error:;AddressSanitizer;ThreadSanitizer"
  ENVIRONMENT "CHATELAINE_BINARY=$<TARGET_FILE:chatelaine>")
