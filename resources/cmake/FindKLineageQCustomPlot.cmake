# SPDX-License-Identifier: GPL-3.0-or-later
# The Qt 6 build of QCustomPlot as klineage::dep-qcustomplot. Include <qcustomplot.h>.
find_package(QCustomPlotQt6 QUIET)
if(TARGET QCustomPlotQt6::QCustomPlotQt6)
    set(_library QCustomPlotQt6::QCustomPlotQt6)
else()
    find_library(QCUSTOMPLOT_LIBRARY NAMES QCustomPlotQt6 qcustomplot-qt6)
    set(_library ${QCUSTOMPLOT_LIBRARY})
endif()
find_path(QCUSTOMPLOT_INCLUDE_DIR qcustomplot.h)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(KLineageQCustomPlot REQUIRED_VARS _library QCUSTOMPLOT_INCLUDE_DIR
    REASON_FAILURE_MESSAGE "run resources/setup/install.sh, or build with -DKLINEAGE_BUILD_UI=OFF")
if(KLineageQCustomPlot_FOUND AND NOT TARGET klineage-dep-qcustomplot)
    add_library(klineage-dep-qcustomplot INTERFACE)
    add_library(klineage::dep-qcustomplot ALIAS klineage-dep-qcustomplot)
    target_link_libraries(klineage-dep-qcustomplot INTERFACE ${_library} Qt6::Widgets Qt6::PrintSupport)
    target_include_directories(klineage-dep-qcustomplot SYSTEM INTERFACE ${QCUSTOMPLOT_INCLUDE_DIR})
    target_compile_definitions(klineage-dep-qcustomplot INTERFACE QCUSTOMPLOT_USE_LIBRARY)
endif()
