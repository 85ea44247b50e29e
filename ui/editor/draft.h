// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/result.h"

#include <QString>

#include <filesystem>
#include <memory>
#include <mutex>
#include <vector>

namespace klineage::ui {

/// A candidate that somebody is writing, begun from a row of a lineage.
struct Draft {
    QString id;         ///< names its file
    QString lineageKey; ///< "sgemm/pocl"
    QString parentRow;  ///< "K03"
    QString fileName;   ///< "K03-draft.cl"
    QString parentText; ///< what it was begun from, so that it can be gated against it
    QString text;
    int cursor = 0; ///< UTF-16 units

    [[nodiscard]] static Draft begin(const QString &lineageKey, const QString &parentRow,
                                     const QString &parentFile, const QString &parentText);
};

/// Drafts on disk, one file each, replaced atomically: after a crash at any instant a draft is as it was at its last save.
/// Thread-safe; a save that arrives after a newer one, or after the draft was removed, does nothing.
class DraftStore
{
public:
    explicit DraftStore(std::filesystem::path directory);

    /// Whatever can be read, oldest first; the rest becomes messages.
    [[nodiscard]] std::vector<Draft> readAll(std::vector<QString> *problems = nullptr) const;
    /// A number for save(): later calls give greater ones.
    [[nodiscard]] quint64 nextSequence();
    [[nodiscard]] Status save(const Draft &draft, quint64 sequence);
    [[nodiscard]] Status remove(const QString &id);

private:
    [[nodiscard]] std::filesystem::path fileOf(const QString &id) const;

    std::filesystem::path m_directory;
    std::mutex m_mutex;
    quint64 m_sequence = 0;
    std::vector<std::pair<QString, quint64>> m_newest; ///< by draft: the number of its last save
};

/// Where drafts live: the application's own data folder.
[[nodiscard]] std::filesystem::path defaultDraftDirectory();

} // namespace klineage::ui
