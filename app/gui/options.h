// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "app/manual/command.h"

#include <QSize>
#include <QString>
#include <QStringList>

namespace klineage::app {

/// The command line of klineage.
struct Options {
    QString workspace;  ///< empty: the last one, or the one around the current folder
    QString screenshot; ///< file to write, then exit
    QString report;     ///< what to report: as findSubject() takes it; then exit
    QString output;     ///< the report's file
    QSize size;         ///< of the window; invalid: the session's
    QString theme;      ///< "light", "dark", "system"; empty: the session's
    QString layout;
    QString story;  ///< a picture of the story; empty: as it is
    QString open;   ///< "gemm/sm90", "gemm/sm90/K05", "run:ID" or "experiment:NAME"
    QString kernel; ///< a .cu or .cl file to begin a lineage from
    QString card;
    double scale = 0; ///< 0: the system's

    QString message; ///< help, version or what is wrong with the command line; then nothing is started
    int exitCode = 0;
};

/// Needs no application object: the platform plugin is chosen by what was read.
[[nodiscard]] Options parseOptions(const QStringList &arguments);

/// The same for the manual page and the completions.
[[nodiscard]] manual::Command commandOfWindow();

} // namespace klineage::app
