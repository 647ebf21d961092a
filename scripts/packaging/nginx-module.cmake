# The package of the module for nginx, where that can be built (target nginx_module, which is to be built before). It
# depends on the very nginx that it was built for. Its scripts are those that dh_nginx would write.
set(load_file mod-http-chatelaine.conf)
file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/${load_file} "load_module modules/ngx_http_chatelaine_module.so;\n")
set(nginx_doc share/doc/libnginx-mod-http-chatelaine)
set(nginx_examples ${PROJECT_SOURCE_DIR}/docker/gateways/nginx)
install(TARGETS nginx_module LIBRARY DESTINATION lib/nginx/modules COMPONENT nginx_module EXCLUDE_FROM_ALL)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/${load_file} DESTINATION share/nginx/modules-available COMPONENT nginx_module
        EXCLUDE_FROM_ALL)
install(FILES ${PROJECT_SOURCE_DIR}/docker/gateways/README.md DESTINATION ${nginx_doc} COMPONENT nginx_module
        EXCLUDE_FROM_ALL)
install(FILES ${nginx_examples}/nginx.conf ${nginx_examples}/grpc.conf ${nginx_examples}/fastcgi.conf
              ${nginx_examples}/allowed.conf ${nginx_examples}/module.sed DESTINATION ${nginx_doc}/examples
        COMPONENT nginx_module EXCLUDE_FROM_ALL)

set(nginx_control "")
foreach(script postinst prerm postrm)
  file(READ /usr/share/debhelper/autoscripts/${script}-nginx commands)
  string(REPLACE "#NAMES#" "${load_file}:50-${load_file}" commands "${commands}")
  file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/nginx/${script} "#!/bin/sh\nset -e\n\n${commands}")
  list(APPEND nginx_control ${CMAKE_CURRENT_BINARY_DIR}/nginx/${script})
endforeach()
file(STRINGS /usr/share/nginx/src/debian/libnginx-mod.abisubstvars nginx_abi REGEX "^nginx:abi=")
string(REPLACE "nginx:abi=" "" nginx_abi "${nginx_abi}")

list(APPEND CPACK_COMPONENTS_ALL nginx_module)
set(CPACK_DEBIAN_NGINX_MODULE_PACKAGE_NAME libnginx-mod-http-chatelaine)
set(CPACK_DEBIAN_NGINX_MODULE_PACKAGE_SECTION httpd)
set(CPACK_DEBIAN_NGINX_MODULE_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_NGINX_MODULE_PACKAGE_DEPENDS "${nginx_abi}")
set(CPACK_DEBIAN_NGINX_MODULE_PACKAGE_SUGGESTS "chatelaine")
set(CPACK_DEBIAN_NGINX_MODULE_DESCRIPTION "checks of API keys in nginx's own process
A node of Chatelaine shares its decisions in memory with nginx on its
machine. Requests that nginx does not accept by that are asked of a node,
as auth_request does. A revoked key is refused from the first request after
its revocation was answered.")
set(CPACK_DEBIAN_NGINX_MODULE_PACKAGE_CONTROL_EXTRA ${nginx_control})
