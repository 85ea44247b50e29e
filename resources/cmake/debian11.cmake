# SPDX-License-Identifier: GPL-3.0-or-later
# Toolchain of the preset gpu-static: this system's compiler, the C library of Debian 11 (resources/setup/sysroot.sh makes it). What a
# program asks of glibc is decided by the glibc that it is linked with, so that a gate built here starts on any system since 2020.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR x86_64)
set(KLINEAGE_SYSROOT "${CMAKE_CURRENT_LIST_DIR}/../../build/sysroot/bullseye" CACHE PATH "Files of the oldest system to run on")
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES KLINEAGE_SYSROOT)
get_filename_component(CMAKE_SYSROOT "${KLINEAGE_SYSROOT}" ABSOLUTE)
if(NOT EXISTS "${CMAKE_SYSROOT}/usr/include/stdio.h")
    message(FATAL_ERROR "There is no sysroot in ${CMAKE_SYSROOT}: run resources/setup/sysroot.sh")
endif()
set(CMAKE_CXX_COMPILER g++)

# With a sysroot the compiler looks there for its own C++ headers too, which are here.
if(NOT KLINEAGE_CXX_HEADERS)
    execute_process(COMMAND ${CMAKE_CXX_COMPILER} -dumpversion OUTPUT_VARIABLE _version OUTPUT_STRIP_TRAILING_WHITESPACE)
    execute_process(COMMAND ${CMAKE_CXX_COMPILER} -print-multiarch OUTPUT_VARIABLE _machine OUTPUT_STRIP_TRAILING_WHITESPACE)
    set(KLINEAGE_CXX_HEADERS "/usr/include/c++/${_version};/usr/include/${_machine}/c++/${_version};/usr/include/c++/${_version}/backward")
endif()
string(APPEND CMAKE_CXX_FLAGS_INIT " -nostdinc++")
foreach(_folder ${KLINEAGE_CXX_HEADERS})
    string(APPEND CMAKE_CXX_FLAGS_INIT " -isystem ${_folder}")
endforeach()
string(APPEND CMAKE_EXE_LINKER_FLAGS_INIT " -static-libstdc++ -static-libgcc")

# The compiler looks for start files and libraries beside its own first, which is outside of the sysroot.
set(_libraries "${CMAKE_SYSROOT}/usr/lib/x86_64-linux-gnu")
string(APPEND CMAKE_EXE_LINKER_FLAGS_INIT " -B${_libraries} -L${_libraries} -L${CMAKE_SYSROOT}/lib/x86_64-linux-gnu")
# Of this glibc threads are a library of their own, which static libstdc++ names nowhere.
set(CMAKE_CXX_STANDARD_LIBRARIES_INIT "-lpthread -ldl -lrt")
set(KLINEAGE_OLDEST_GLIBC 2.31) # what gate-tarball holds the gate to; app/gate/oldglibc.cpp has what that lacks

set(CMAKE_FIND_ROOT_PATH "${CMAKE_SYSROOT}")
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
