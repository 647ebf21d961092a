# Runs before the package is put together: adds what Debian's policy asks for and the bill of materials, and sets all
# times, so that the same files make the same package.
if(NOT DEFINED ENV{SOURCE_DATE_EPOCH})
  message(FATAL_ERROR "set SOURCE_DATE_EPOCH, as scripts/package does: without it, each build makes other bytes")
endif()
execute_process(COMMAND ${CPACK_CHATELAINE_PACKAGING}/finish-package ${CPACK_TEMPORARY_DIRECTORY}
                        ${CPACK_DEBIAN_PACKAGE_VERSION} ${CPACK_DEBIAN_PACKAGE_MAINTAINER}
                COMMAND_ERROR_IS_FATAL ANY)
