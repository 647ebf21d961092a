# The real gateways, where they are installed: scripts/gateways. Those that Debian does not have are linted alone.
find_program(NGINX nginx)
find_program(OATHTOOL oathtool)
find_program(JQ jq)
find_program(NGHTTP nghttp)
find_program(NGHTTPX nghttpx)
if(NGINX AND OATHTOOL AND JQ AND NGHTTP AND NGHTTPX)
  add_test(NAME gateways COMMAND ${PROJECT_SOURCE_DIR}/scripts/gateways)
  add_test(NAME gateways_day COMMAND ${PROJECT_SOURCE_DIR}/scripts/gateways --day)
  set_tests_properties(gateways gateways_day PROPERTIES TIMEOUT 1200 LABELS gateways PROCESSORS 2
    ENVIRONMENT "BUILD=$<TARGET_FILE_DIR:chatelaine>"
    FAIL_REGULAR_EXPRESSION "LeakSanitizer;runtime error:;AddressSanitizer;ThreadSanitizer")
  set_tests_properties(gateways PROPERTIES COST 200)
endif()
add_npm_test(gateways_lint gateways node --test lint.test.js)
set_tests_properties(gateways_lint PROPERTIES LABELS gateways TIMEOUT 60)

find_program(HAPROXY haproxy)
find_program(CURL curl)
if(HAPROXY AND CURL)
  add_npm_test(gateways_watch gateways node --test watch.test.js)
  set_tests_properties(gateways_watch PROPERTIES LABELS gateways)
endif()

# The module for nginx, with a table that needs no node: a good one, and all kinds that are none.
add_executable(table_server gateways/table_server.c)
target_include_directories(table_server PRIVATE ${PROJECT_SOURCE_DIR}/include)
