# The real gateways, where they are installed: scripts/gateways. Those that Debian does not have are linted alone.
find_program(NGINX nginx)
find_program(OATHTOOL oathtool)
find_program(JQ jq)
find_program(NGHTTP nghttp)
find_program(NGHTTPX nghttpx)
find_program(NODE node)
if(NGINX AND NOT NODE)
  message(WARNING "Node.js is missing, so the gateways are not tested")
endif()
if(NGINX AND OATHTOOL AND JQ AND NGHTTP AND NGHTTPX AND NODE)
  add_measured_test(NAME gateways COMMAND ${PROJECT_SOURCE_DIR}/scripts/gateways)
  add_measured_test(NAME gateways_day COMMAND ${PROJECT_SOURCE_DIR}/scripts/gateways --day)
  add_measured_test(NAME gateways_doctor COMMAND ${PROJECT_SOURCE_DIR}/scripts/gateways --doctor)
  add_measured_test(NAME gateways_rolling COMMAND ${PROJECT_SOURCE_DIR}/scripts/gateways --rolling)
  set(with_nodes gateways gateways_day gateways_doctor gateways_rolling)
  set_tests_properties(${with_nodes} PROPERTIES TIMEOUT 3600 LABELS gateways PROCESSORS 2
    ENVIRONMENT "BUILD=$<TARGET_FILE_DIR:chatelaine>"
    FAIL_REGULAR_EXPRESSION "LeakSanitizer;runtime error:;AddressSanitizer;ThreadSanitizer")
  set_tests_properties(gateways PROPERTIES COST 400)
endif()
add_npm_test(gateways_lint gateways node lint.test.js)
set_tests_properties(gateways_lint PROPERTIES LABELS gateways TIMEOUT 300)

add_npm_test(gateways_shipped gateways node --test shipped.test.js strangers.test.js bytes.test.js)
set_tests_properties(gateways_shipped PROPERTIES LABELS gateways TIMEOUT 300)

find_program(HAPROXY haproxy)
find_program(CURL curl)
if(HAPROXY AND CURL)
  add_npm_test(gateways_watch gateways node watch.test.js)
  set_tests_properties(gateways_watch PROPERTIES LABELS gateways)
endif()

# The module for nginx, with a table that needs no node: a good one, and all kinds that are none. Debian's nginx has no
# sanitizer, so gcc's is loaded before it; clang's cannot be.
if(NGINX AND TARGET nginx_module AND (CMAKE_C_COMPILER_ID STREQUAL "GNU" OR NOT CHATELAINE_SANITIZE))
  add_executable(table_server EXCLUDE_FROM_ALL gateways/table_server.c)
  target_include_directories(table_server PRIVATE ${PROJECT_SOURCE_DIR}/include)
  add_measured_test(NAME gateways_module_build COMMAND ${CMAKE_COMMAND} --build ${PROJECT_BINARY_DIR} --target nginx_module table_server)
  set_tests_properties(gateways_module_build PROPERTIES FIXTURES_SETUP nginx_module LABELS gateways TIMEOUT 900)
  add_npm_test(gateways_module gateways node --test module.test.js module_trust.test.js)
  set_property(TEST gateways_module APPEND PROPERTY ENVIRONMENT "NGINX_PROGRAM=${NGINX}"
    "NGINX_MODULE=$<TARGET_FILE:nginx_module>" "TABLE_SERVER=$<TARGET_FILE:table_server>")
  set_tests_properties(gateways_module PROPERTIES LABELS gateways FIXTURES_REQUIRED nginx_module)
  if(TEST gateways)
    set_tests_properties(${with_nodes} PROPERTIES FIXTURES_REQUIRED nginx_module)
  endif()
endif()
