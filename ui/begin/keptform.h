// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/result.h"

#include <QString>
#include <QStringList>

#include <filesystem>
#include <optional>

namespace klineage::ui {

/// Everything that somebody has typed for a new lineage, so that it is there again at the next start.
struct KeptForm {
    QString fileName; ///< the kernel's own
    QString surface;  ///< "opencl"
    QString code;
    QString byHand; ///< the candidate file, where it is written by hand; empty: the form makes it
    QString workload;
    QString name;
    QString platform;
    QString title;
    QString origin;
    QString kernel;
    QString grid;
    QString block;
    QString shared;
    QStringList args;
    QStringList tunables; ///< "BM=64:32,64,128": default and values

    friend bool operator==(const KeptForm &, const KeptForm &) = default;
};

/// The file of a workspace's form: one each, in the user's data folder.
[[nodiscard]] std::filesystem::path keptFormFile(const QString &workspaceRoot);

/// Replaced atomically. Errors: Io.
[[nodiscard]] Status saveForm(const std::filesystem::path &file, const KeptForm &form);
/// Nothing when there is none, or none of this version.
[[nodiscard]] std::optional<KeptForm> loadForm(const std::filesystem::path &file);

} // namespace klineage::ui
