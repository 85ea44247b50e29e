// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/files/sha256.h"
#include "core/run/journal.h"

#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <QDir>
#include <QFileInfo>
#include <QTemporaryDir>

namespace klineage::tests {

/// What a table says the gate would find of a text: the latency when it is correct, otherwise the status.
struct FakeVerdict {
    gate::VerdictStatus status = gate::VerdictStatus::Correct;
    double ns = 0;
    std::string message = "as the table says";
};

/// A gate that is a function of the candidate's text. The reference takes referenceNs; ids are a function of the text and of how
/// often it was asked, so that two equal runs have equal records.
class FakeGate
{
public:
    explicit FakeGate(std::function<FakeVerdict(const std::string &text)> judge, double referenceNs = 1000)
        : m_judge(std::move(judge))
        , m_referenceNs(referenceNs)
    {}

    int calls = 0;

    Result<gate::Trial> operator()(const gate::GateRequest &request, std::stop_token stop,
                                   const gate::ProgressCallback &)
    {
        if (stop.stop_requested())
            return klineage::fail(ErrorCode::Cancelled, "The trial was stopped.");
        ++calls;
        const FakeVerdict verdict = m_judge(request.candidateText);
        gate::Trial trial;
        trial.candidate = files::sha256Hex(request.candidateText);
        trial.id = trial.candidate.substr(0, 16);
        trial.time = "2026-01-02T03:04:05Z";
        trial.workload = request.workloadDirectory.filename().string();
        trial.environment = {"pocl", "table", {}};
        trial.verdict.status = verdict.status;
        trial.verdict.message = verdict.message;
        trial.verdict.reason = verdict.status == gate::VerdictStatus::Correct ? "ok" : "table";
        trial.verdict.stage =
            verdict.status == gate::VerdictStatus::Correct ? gate::Stage::Profile : gate::Stage::Correctness;
        if (verdict.status == gate::VerdictStatus::Correct) {
            trial.latencyNs = {verdict.ns, verdict.ns * 0.99, verdict.ns * 1.01};
            compare(trial, request, verdict.ns);
        }
        return trial;
    }

    /// The same object each time: a GateFunction copies what it is given.
    run::GateFunction function()
    {
        return [this](const gate::GateRequest &request, std::stop_token stop,
                      const gate::ProgressCallback &progress) { return (*this)(request, stop, progress); };
    }

private:
    void compare(gate::Trial &trial, const gate::GateRequest &request, double ns) const
    {
        if (!request.parentText.empty()) {
            const double parentNs = m_judge(request.parentText).ns;
            trial.verdict.comparisons.push_back({"parent", files::sha256Hex(request.parentText),
                                                 interval(parentNs / ns), parentNs,
                                                 parentNs > ns * 1.02   ? gate::Change::Gain
                                                 : ns > parentNs * 1.02 ? gate::Change::Loss
                                                                        : gate::Change::NoGain});
        }
        if (request.withReference && m_referenceNs > 0)
            trial.verdict.comparisons.push_back(
                {"openblas", "OpenBLAS 0", interval(m_referenceNs / ns), m_referenceNs, gate::Change::Loss});
    }

    static gate::Interval interval(double value) { return {value, value * 0.99, value * 1.01}; }

    std::function<FakeVerdict(const std::string &text)> m_judge;
    double m_referenceNs;
};

/// A folder in memory where there is one: what is written there is synced all the time.
class MemoryFolder
{
public:
    [[nodiscard]] std::filesystem::path path() const { return m_folder.path().toStdString(); }

private:
    static QString place()
    {
        const QString memory = QStringLiteral("/dev/shm");
        return (QFileInfo(memory).isWritable() ? memory : QDir::tempPath())
               + QStringLiteral("/klineage-test-XXXXXX");
    }
    QTemporaryDir m_folder{place()};
};

inline std::string readAll(const std::filesystem::path &file)
{
    std::ifstream in(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

inline void writeAll(const std::filesystem::path &file, const std::string &bytes)
{
    std::ofstream(file, std::ios::binary) << bytes;
}

} // namespace klineage::tests
