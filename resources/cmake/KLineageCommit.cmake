# SPDX-License-Identifier: GPL-3.0-or-later
# cmake -DSOURCE=DIR -DOUT=FILE -P KLineageCommit.cmake: writes the macro KLINEAGE_COMMIT, " (commit)" or "", when it is another than the
# file has. Without git, or in a folder that is not the top of a repository (an unpacked archive inside another one), it is "".
set(_text "")
find_program(_git git)
if(_git)
    execute_process(COMMAND ${_git} -C ${SOURCE} rev-parse --show-toplevel
        OUTPUT_VARIABLE _top OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE _failed)
    file(REAL_PATH "${SOURCE}" _source)
    if(NOT _failed AND _top STREQUAL _source)
        execute_process(COMMAND ${_git} -C ${SOURCE} describe --always --abbrev=12 --exclude=* --dirty=,\ changed
            OUTPUT_VARIABLE _commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE _failed)
        if(NOT _failed AND _commit MATCHES "^[0-9a-f]+(, changed)?$")
            set(_text " (${_commit})")
        endif()
    endif()
endif()
set(_content "#define KLINEAGE_COMMIT \"${_text}\"\n")
set(_before "")
if(EXISTS ${OUT})
    file(READ ${OUT} _before)
endif()
if(NOT _before STREQUAL _content)
    file(WRITE ${OUT} "${_content}")
endif()
