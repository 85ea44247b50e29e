// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/files/sha256.h"
#include "core/trial/trial.h"
#include "tests/paths.h"

#include <filesystem>
#include <string>

#include <QTemporaryDir>

namespace klineage::tests {

/// A correct, timed trial of a text; the numbers are invented.
inline gate::Trial makeTrial(const std::string &id, std::string_view candidateText,
                             std::string_view parentText = {})
{
    gate::Trial trial;
    trial.id = id;
    trial.time = "2026-01-02T03:04:05Z";
    trial.workload = "toy";
    trial.candidate = files::sha256Hex(candidateText);
    if (!parentText.empty())
        trial.parent = files::sha256Hex(parentText);
    trial.environment = {"pocl", "test fixture", {}};
    trial.verdict.status = gate::VerdictStatus::Correct;
    trial.verdict.stage = gate::Stage::Profile;
    trial.verdict.reason = "ok";
    trial.latencyNs = {1000, 990, 1010};
    if (!parentText.empty())
        trial.verdict.comparisons.push_back(
            {"parent", trial.parent, {2, 1.9, 2.1}, 2000, gate::Change::Gain});
    return trial;
}

/// A throw-away copy of tests/data/workspace.
class WorkspaceCopy
{
public:
    WorkspaceCopy()
    {
        std::filesystem::copy(std::filesystem::path(klineage::test::sourcePath()) / "tests/data/workspace",
                              root(), std::filesystem::copy_options::recursive);
    }

    [[nodiscard]] std::filesystem::path root() const
    {
        return std::filesystem::path(m_folder.path().toStdString()) / "w";
    }
    [[nodiscard]] std::filesystem::path lineage() const { return root() / "workloads/toy/lineages/pocl"; }
    [[nodiscard]] std::filesystem::path skills() const { return root() / "skills"; }

private:
    QTemporaryDir m_folder;
};

} // namespace klineage::tests
