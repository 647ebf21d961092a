# Tests of the tests: sanitizer findings must fail a run, and so must a forbidden include or function, a
# variable that is freed before it is set, and a document that says what is not so.
if(CHATELAINE_SANITIZE MATCHES "address")
  foreach(canary leak undefined)
    add_executable(canary_${canary} ${CMAKE_CURRENT_LIST_DIR}/canary_${canary}.c)
    target_link_libraries(canary_${canary} PRIVATE test_support)
    add_measured_test(NAME meta_canary_${canary}_fails COMMAND canary_${canary})
    set_tests_properties(meta_canary_${canary}_fails PROPERTIES WILL_FAIL TRUE TIMEOUT 300)
    add_measured_test(NAME meta_canary_${canary}_is_reported COMMAND canary_${canary})
  endforeach()
  set_tests_properties(meta_canary_leak_is_reported PROPERTIES TIMEOUT 300 PASS_REGULAR_EXPRESSION "LeakSanitizer")
  set_tests_properties(meta_canary_undefined_is_reported PROPERTIES TIMEOUT 300 PASS_REGULAR_EXPRESSION "runtime error:")
endif()

# The checks find what they are for. That they find nothing in the sources, scripts/check says.
foreach(check layers banned cleanup)
  add_measured_test(NAME meta_check_${check}_can_fail
                    COMMAND ${PROJECT_SOURCE_DIR}/scripts/check-${check} ${CMAKE_CURRENT_LIST_DIR}/wrong-layers)
  set_tests_properties(meta_check_${check}_can_fail PROPERTIES TIMEOUT 300 WILL_FAIL TRUE)
endforeach()
# Nor does it fail for one reason alone.
set_tests_properties(meta_check_layers_can_fail PROPERTIES WILL_FAIL FALSE PASS_REGULAR_EXPRESSION
  "engine/verb.h.* is for engine, trail and records.*audit_search.h.* is for engine, trail and records.*core must not include engine.*hiredis.*keys must not include people")

add_measured_test(NAME meta_changed COMMAND ${CMAKE_CURRENT_LIST_DIR}/changed ${PROJECT_SOURCE_DIR}/scripts/changed-sources)
set_tests_properties(meta_changed PROPERTIES TIMEOUT 300)
add_measured_test(NAME meta_stamps COMMAND ${CMAKE_CURRENT_LIST_DIR}/stamps ${PROJECT_SOURCE_DIR}/scripts/stamps)
set_tests_properties(meta_stamps PROPERTIES TIMEOUT 300)

# Every kind of finding, in the order in which they are told.
add_measured_test(NAME meta_check_docs_can_fail
                  COMMAND ${PROJECT_SOURCE_DIR}/scripts/check-docs ${CMAKE_CURRENT_LIST_DIR}/wrong-docs)
set_tests_properties(meta_check_docs_can_fail PROPERTIES TIMEOUT 600 PASS_REGULAR_EXPRESSION
  "leads nowhere.*no such heading.*src/api: has no README.*What is wrong goes first.*begin with a subject.*no function.*nobody explains this.*no source says this.*no metric.*other alerts.*the runbook of NobodyExplainsThis.*no alert NoSuchAlert.*fires for a state.*lacks a row of the metric.*lacks a row of the setting.*no setting.*lacks a row of the command.*no command.*lacks a row of the error.*no error.*lacks its cause.*no constant.*no such heading.*api.md.*design 6.*no rule 99.*no rule H99.*other rules")

add_measured_test(NAME meta_check_lua_can_fail COMMAND ${PROJECT_SOURCE_DIR}/scripts/check-lua ${CMAKE_CURRENT_LIST_DIR}/wrong-lua)
set_tests_properties(meta_check_lua_can_fail PROPERTIES TIMEOUT 300 PASS_REGULAR_EXPRESSION
  "prelude.lua:1:.*unused_by_all.*wrong.lua:1:.*'unread'.*wrong.lua:4:.*undefined variable 'coutned'")

# What embeds the scripts refuses one that does not declare its arguments, and one whose declaration says nothing.
foreach(wrong undeclared unnamed)
  add_measured_test(NAME meta_embed_refuses_${wrong} COMMAND embed_lua ${CMAKE_CURRENT_LIST_DIR}/wrong-argv --locals
           ${CMAKE_CURRENT_LIST_DIR}/wrong-argv/${wrong}.lua)
endforeach()
set_tests_properties(meta_embed_refuses_undeclared PROPERTIES TIMEOUT 60 PASS_REGULAR_EXPRESSION
  "undeclared.lua does not declare its arguments")
set_tests_properties(meta_embed_refuses_unnamed PROPERTIES TIMEOUT 60 PASS_REGULAR_EXPRESSION
  "unnamed.lua declares no argument by: then an account")

add_measured_test(NAME meta_check_names_can_fail COMMAND ${PROJECT_SOURCE_DIR}/scripts/check-lua ${CMAKE_CURRENT_LIST_DIR}/wrong-names)
set_tests_properties(meta_check_names_can_fail PROPERTIES TIMEOUT 300 PASS_REGULAR_EXPRESSION
  "name.lua:2:function K.secret.*names in Redis are functions of K")

add_npm_test(meta_lint_can_fail lint ./lint ${CMAKE_CURRENT_LIST_DIR}/wrong-pages)
set_tests_properties(meta_lint_can_fail PROPERTIES PASS_REGULAR_EXPRESSION
  "wrong.js.*no-undef.*wrong.test.js.*no-shadow.*wrong.css.*property-no-unknown.*4px 1px")

# scripts/check-bounds in a tree that is made for it: what it measures here is the release build, by scripts/check.
add_measured_test(NAME meta_check_bounds_can_fail COMMAND ${CMAKE_CURRENT_LIST_DIR}/bounds)
set_tests_properties(meta_check_bounds_can_fail PROPERTIES TIMEOUT 300)

add_measured_test(NAME meta_clang_tidy_can_fail COMMAND clang-tidy --quiet --config-file=${PROJECT_SOURCE_DIR}/.clang-tidy
         ${CMAKE_CURRENT_LIST_DIR}/wrong-functions/long.c --)
set_tests_properties(meta_clang_tidy_can_fail PROPERTIES TIMEOUT 300 PASS_REGULAR_EXPRESSION
  "long.c:2:.*too_long.*readability-function-size")

add_measured_test(NAME meta_step_up COMMAND ${CMAKE_CURRENT_LIST_DIR}/step-up)
set_tests_properties(meta_step_up PROPERTIES TIMEOUT 60)

# Tests that run at once do not get the same port.
add_executable(port ${CMAKE_CURRENT_LIST_DIR}/port.c)
target_link_libraries(port PRIVATE test_support)
add_measured_test(NAME meta_ports COMMAND ${CMAKE_CURRENT_LIST_DIR}/ports $<TARGET_FILE:port>)
set_tests_properties(meta_ports PROPERTIES TIMEOUT 600)

# The end of a failed run says why.
add_executable(canary_assertion ${CMAKE_CURRENT_LIST_DIR}/canary_assertion.c)
target_link_libraries(canary_assertion PRIVATE deps::criterion)
add_measured_test(NAME meta_run COMMAND ${CMAKE_CURRENT_LIST_DIR}/run $<TARGET_FILE:canary_assertion>)
set_tests_properties(meta_run PROPERTIES TIMEOUT 300)
