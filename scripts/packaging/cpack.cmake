# The Debian packages. scripts/package builds them with the release preset, in a fixed folder and with a fixed time, so that
# everybody gets the same bytes from the same sources.
set(debian unknown)
if(EXISTS /etc/os-release)
  file(STRINGS /etc/os-release release REGEX "^VERSION_ID=")
  string(REGEX MATCH "[0-9]+" debian "${release}")
endif()
set(CHATELAINE_MAINTAINER "Chatelaine <packages@chatelaine.example>" CACHE STRING "Who answers for the package")
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME chatelaine)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE
    WORLD_READ WORLD_EXECUTE)
set(CPACK_THREADS 1)
# Built for one Debian each; that of the newer one is the newer package.
set(CPACK_DEBIAN_PACKAGE_VERSION "${PROJECT_VERSION}+deb${debian}")
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_DEBIAN_PACKAGE_MAINTAINER "${CHATELAINE_MAINTAINER}")
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)

# The packages: node, library and development are groups of components.
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_ALL program files library development)
set(CPACK_DEBIAN_NODE_PACKAGE_NAME chatelaine)
set(CPACK_DEBIAN_NODE_PACKAGE_SECTION net)
set(CPACK_DEBIAN_NODE_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_NODE_PACKAGE_DEPENDS "systemd | systemd-standalone-sysusers")
set(CPACK_DEBIAN_NODE_PACKAGE_RECOMMENDS "logrotate")
set(CPACK_DEBIAN_NODE_PACKAGE_SUGGESTS "redis-server (>= 5:7.0) | valkey-server, redis-tools")
set(CPACK_DEBIAN_NODE_DESCRIPTION "API keys and console sign-in with reliable revocation
A node of Chatelaine checks API keys from memory, at the speed of a static
page. Once a revocation has been answered, no node accepts that key for a
request that arrives later. All state is in a durable Redis.
.
The service is not started until it has settings: see OPERATIONS.md in
/usr/share/doc/chatelaine.")
set(control ${CMAKE_CURRENT_SOURCE_DIR}/debian)
set(CPACK_DEBIAN_NODE_PACKAGE_CONTROL_EXTRA ${control}/postinst ${control}/prerm ${control}/postrm ${control}/conffiles)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_NAME libchatelaine-check1)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SECTION libs)
# Written down, because a CPack that has looked for libraries calls ldconfig in scripts instead of by a trigger.
set(CPACK_DEBIAN_LIBRARY_PACKAGE_DEPENDS "libc6 (>= 2.34)")
set(CPACK_DEBIAN_LIBRARY_PACKAGE_CONTROL_EXTRA ${control}/library/shlibs ${control}/library/triggers)
set(CPACK_DEBIAN_LIBRARY_DESCRIPTION "checks of API keys in the caller's own process
A node of Chatelaine shares its decisions in memory with programs on its
machine. This library reads them, for languages that can call C.")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libchatelaine-check-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "libchatelaine-check1 (= ${CPACK_DEBIAN_PACKAGE_VERSION})")
set(CPACK_DEBIAN_DEVELOPMENT_DESCRIPTION "checks of API keys in the caller's own process (headers)
A node of Chatelaine shares its decisions in memory with programs on its
machine. These headers read them; C programs need no library for that.")
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_PRE_BUILD_SCRIPTS ${CMAKE_CURRENT_SOURCE_DIR}/finish-package.cmake)
set(CPACK_CHATELAINE_PACKAGING ${CMAKE_CURRENT_SOURCE_DIR})
if(TARGET nginx_module)
  include(${CMAKE_CURRENT_SOURCE_DIR}/nginx-module.cmake)
endif()
include(CPack)
cpack_add_component(program GROUP node)
cpack_add_component(files GROUP node)
cpack_add_component(library GROUP library)
cpack_add_component(development GROUP development)
if(TARGET nginx_module)
  cpack_add_component(nginx_module GROUP nginx_module)
endif()
