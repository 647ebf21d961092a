# The Debian package of the module for nginx, libnginx-mod-http-chatelaine, beside that of the node: a CPack configuration
# of its own, CPackNginxModule.cmake. The module depends on the very nginx that it was built for. Its scripts are those
# that dh_nginx would write.
set(packaging ${PROJECT_SOURCE_DIR}/scripts/packaging)
set(load_file mod-http-chatelaine.conf)
file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/${load_file} "load_module modules/ngx_http_chatelaine_module.so;\n")
install(TARGETS nginx_module LIBRARY DESTINATION lib/nginx/modules COMPONENT nginx_module EXCLUDE_FROM_ALL)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/${load_file} DESTINATION share/nginx/modules-available COMPONENT nginx_module
        EXCLUDE_FROM_ALL)
set(doc share/doc/libnginx-mod-http-chatelaine)
install(FILES ${PROJECT_SOURCE_DIR}/docker/gateways/README.md ${PROJECT_SOURCE_DIR}/CHANGELOG.md DESTINATION ${doc}
        COMPONENT nginx_module EXCLUDE_FROM_ALL)
install(FILES ${PROJECT_SOURCE_DIR}/docker/gateways/nginx/nginx.conf ${PROJECT_SOURCE_DIR}/docker/gateways/nginx/module.sed
        DESTINATION ${doc}/examples COMPONENT nginx_module EXCLUDE_FROM_ALL)

set(control "")
foreach(script postinst prerm postrm)
  file(READ /usr/share/debhelper/autoscripts/${script}-nginx commands)
  string(REPLACE "#NAMES#" "${load_file}:50-${load_file}" commands "${commands}")
  file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/${script} "#!/bin/sh\nset -e\n\n${commands}")
  list(APPEND control ${CMAKE_CURRENT_BINARY_DIR}/${script})
endforeach()
file(STRINGS ${nginx_source}/debian/libnginx-mod.abisubstvars abi REGEX "^nginx:abi=")
string(REPLACE "nginx:abi=" "" abi "${abi}")

include(${packaging}/cpack-common.cmake)
set(CPACK_OUTPUT_CONFIG_FILE ${CMAKE_BINARY_DIR}/CPackNginxModule.cmake)
set(CPACK_SOURCE_OUTPUT_CONFIG_FILE ${CMAKE_BINARY_DIR}/CPackNginxModuleSource.cmake)
set(CPACK_PACKAGE_NAME libnginx-mod-http-chatelaine)
set(CPACK_INSTALL_CMAKE_PROJECTS "${CMAKE_BINARY_DIR};chatelaine;nginx_module;/")
set(CPACK_DEBIAN_PACKAGE_SECTION httpd)
set(CPACK_DEBIAN_PACKAGE_DEPENDS "${abi}")
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "chatelaine")
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION "API keys checked by Chatelaine, in nginx's own process
A node of Chatelaine on the same machine shares with nginx in memory which
keys are accepted, so that a check costs about a microsecond. Requests that
it does not accept by that are asked of a node, as auth_request does. A
revoked key is refused from the first request after its revocation.")
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA ${control})
include(CPack)
