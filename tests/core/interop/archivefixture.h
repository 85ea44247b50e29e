// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/files/atomicfile.h"
#include "core/interop/archives/importarchive.h"
#include "core/lineage/lineage.h"
#include "tests/app/cli/rows.h"

#include <QTemporaryDir>
#include <QTest>

#include <algorithm>
#include <filesystem>
#include <memory>

/// What the tests of archives share: a workload, an archive beside it, what came of importing that.
namespace klineage::interop {

/// A kernel for the workload `rows` without a plan; the number makes it another text.
inline std::string kernelCode(int number)
{
    return "// " + std::to_string(number)
           + "\n__kernel void rows(__global const float *x, __global float *y, int C)\n{\n"
             "    int r = get_group_id(0);\n    float sum = 0.0f;\n"
             "    for (int i = 0; i < C; ++i)\n        sum += x[r * C + i];\n    y[r] = sum;\n}\n";
}

class ArchiveFixture
{
protected:
    std::unique_ptr<QTemporaryDir> m_folder;
    workload::Workload m_rows;
    std::vector<ImportEntry> m_entries;

    std::filesystem::path root() const { return m_folder->path().toStdString(); }
    void write(const std::filesystem::path &file, const std::string &text) const
    {
        std::filesystem::create_directories((root() / file).parent_path());
        QVERIFY(files::writeFileAtomic(root() / file, text));
    }
    static ArchiveOptions options()
    {
        ArchiveOptions options;
        options.platform = "pocl";
        return options;
    }
    /// Imports and reads back; the entry that was made is the first.
    lineage::Lineage mustImport(const std::filesystem::path &from, const ArchiveOptions &options)
    {
        auto entries = importArchive(root() / from, m_rows, options);
        if (!entries)
            qFatal("%s", entries.error().message.c_str());
        m_entries = std::move(*entries);
        if (m_entries.front().name.empty())
            qFatal("%s", m_entries.front().reason.c_str());
        const std::string key = m_entries.front().name;
        auto lineage = lineage::readLineage(m_rows.directory / "lineages" / key.substr(key.find('/') + 1));
        if (!lineage)
            qFatal("%s", lineage.error().message.c_str());
        return std::move(*lineage);
    }
    /// Why nothing was imported.
    std::string reasonOf(const std::filesystem::path &from)
    {
        auto entries = importArchive(root() / from, m_rows, options());
        if (!entries)
            qFatal("%s", entries.error().message.c_str());
        m_entries = std::move(*entries);
        if (!m_entries.front().name.empty() || std::filesystem::exists(m_rows.directory / "lineages"))
            qFatal("imported");
        return m_entries.front().reason;
    }
    bool isNoted(const std::string &part) const
    {
        const auto &notes = m_entries.front().notes;
        const bool found = std::any_of(notes.begin(), notes.end(), [&](const std::string &note) {
            return note.find(part) != std::string::npos;
        });
        if (!found) {
            for (const std::string &note : notes)
                qWarning("note: %s", note.c_str());
        }
        return found;
    }
    bool isSkipped(const std::string &source, const std::string &part) const
    {
        const bool found = std::any_of(m_entries.begin(), m_entries.end(), [&](const ImportEntry &entry) {
            return entry.source == source && entry.reason.find(part) != std::string::npos;
        });
        if (!found) {
            for (const ImportEntry &entry : m_entries)
                qWarning("%s: %s", entry.source.c_str(), entry.reason.c_str());
        }
        return found;
    }

    void begin()
    {
        m_folder = std::make_unique<QTemporaryDir>();
        auto rows = workload::parseWorkload(klineage::tests::rowsWorkload, "workload.toml");
        QVERIFY2(rows, rows ? "" : rows.error().message.c_str());
        m_rows = std::move(*rows);
        m_rows.directory = root() / "workloads" / "rows";
        std::filesystem::create_directories(m_rows.directory);
    }
};

} // namespace klineage::interop
