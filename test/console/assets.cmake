# A file that has changed lies in another folder, for browsers keep what they got from one for ever; what has not changed
# stays where it was. Run as cmake -DSOURCE=… -DFOLDER=… -P.
cmake_minimum_required(VERSION 3.25)
file(WRITE ${FOLDER}/page.html "<script src=\"@FILES@/page.js\"></script>")
file(WRITE ${FOLDER}/api.json "{}")

function(embed script ret_path)
  file(WRITE ${FOLDER}/page.js "${script}")
  execute_process(
    COMMAND ${CMAKE_COMMAND} -DFILES=${FOLDER}/page.js -DDOCUMENT=${FOLDER}/page.html -DDESCRIPTION=${FOLDER}/api.json
            -DOUTPUT=${FOLDER}/table.c -P ${SOURCE}/src/console/pages/embed.cmake COMMAND_ERROR_IS_FATAL ANY)
  file(READ ${FOLDER}/table.c table)
  string(REGEX MATCH "/console/[0-9a-f]+/page.js" path "${table}")
  set(${ret_path} "${path}" PARENT_SCOPE)
endfunction()

embed("first" first)
embed("second" second)
embed("first" again)
if(NOT first OR first STREQUAL second OR NOT first STREQUAL again)
  message(FATAL_ERROR "one script lies in '${first}' and '${again}', another in '${second}'")
endif()
