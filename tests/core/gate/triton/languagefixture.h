// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/files/atomicfile.h"
#include "core/gate/selftest/corpusfile.h"
#include "core/gate/session/languageprocess.h"
#include "core/gate/supervisor/supervisor.h"
#include "core/gate/triton/launches.h"
#include "core/kernel/candidate.h"
#include "tests/core/gate/corpusworkload.h"
#include "tests/paths.h"

#include <QtTest>

/// What the tests of languages that are packages of Python's have in common.
namespace klineage::test {

/// tests/gate/corpus/triton
inline std::filesystem::path corpusOf(const std::string &language)
{
    return std::filesystem::path(sourcePath()) / "tests/gate/corpus" / language;
}

inline kernel::Candidate parsed(const std::string &text)
{
    auto candidate = kernel::parseCandidate(text, "K00.py");
    if (!candidate)
        qFatal("%s", candidate.error().message.c_str());
    return std::move(*candidate);
}

/// What is said of a text in which something stands in another's place.
inline std::string refusalOf(std::string text, const std::string &what, const std::string &with)
{
    const std::size_t at = text.find(what);
    if (at == std::string::npos)
        return "not found";
    const auto candidate = kernel::parseCandidate(text.replace(at, what.size(), with), "K00.py");
    return candidate ? "" : candidate.error().message;
}

inline std::string textOf(const std::filesystem::path &file)
{
    const auto text = files::readFile(file, kernel::maxCandidateBytes);
    return text ? *text : std::string();
}

/// What becomes of a text that is launched on a workload, with its tunables' defaults.
inline gate::WorkerResult<gate::CompileOutput> compiled(gate::LanguageProcess &compiler,
                                                        const std::string &text,
                                                        const workload::Workload &workload,
                                                        double limitSeconds = 60)
{
    const kernel::Candidate candidate = parsed(text);
    std::map<std::string, std::int64_t> tunables;
    for (const kernel::Tunable &tunable : candidate.tunables)
        tunables[tunable.name] = tunable.defaultValue;
    const auto launches = gate::describeLaunches(candidate, workload, tunables);
    if (!launches)
        qFatal("%s", launches.error().message.c_str());
    return compiler.compile(
        {kernel::toString(candidate.surface), text, "K00.py", tunables, "sm_90a", *launches}, limitSeconds,
        {});
}

/// Of a candidate of a corpus, on a device whose worker is a fake.
inline Result<gate::Trial> supervisedTrial(const std::filesystem::path &corpus, const std::string &file)
{
    gate::SupervisorOptions options;
    options.workerCommand = {programPath() + "/klineage-fakeworker", "memory"};
    options.compilerCommand = {programPath() + "/klineage-gate", "compile"};
    options.trustedKernel = false; // the fake computes nothing
    gate::GateJob job;
    job.workload = corpusWorkload("small-softmax");
    job.request.candidateText = textOf(corpus / file);
    job.request.candidateName = file;
    return gate::Supervisor(options).gate(job);
}

/// Without a Python, the compiler and a trial say how to get one. name: "Triton".
inline void checkWithoutPython(gate::LanguageProcess &compiler, const std::filesystem::path &corpus,
                               const std::string &name)
{
    const QByteArray before = qgetenv("KLINEAGE_PYTHON");
    const bool was = qEnvironmentVariableIsSet("KLINEAGE_PYTHON");
    qputenv("KLINEAGE_PYTHON", "/nowhere/python3");
    const auto version = compiler.version({});
    const auto trial = supervisedTrial(corpus, "rows.py");
    if (was)
        qputenv("KLINEAGE_PYTHON", before);
    else
        qunsetenv("KLINEAGE_PYTHON");
    QVERIFY(!version);
    QCOMPARE(version.error().kind, gate::FailureKind::Unavailable);
    QVERIFY2(version.error().error.message.find("KLINEAGE_PYTHON") != std::string::npos,
             version.error().error.message.c_str());
    QVERIFY(!trial);
    QCOMPARE(trial.error().code, ErrorCode::Unavailable);
    QVERIFY2(trial.error().message.starts_with("Cannot compile " + name + ": "),
             trial.error().message.c_str());
}

/// A row for each candidate of a corpus.
inline void corpusRows(const std::filesystem::path &folder)
{
    QTest::addColumn<QString>("file");
    const auto corpus = gate::readCorpus(folder);
    if (!corpus)
        QFAIL(corpus.error().message.c_str());
    for (const gate::CorpusEntry &entry : corpus->entries)
        QTest::newRow(entry.file.c_str()) << QString::fromStdString(entry.file);
}

/// Where a candidate of a corpus is refused when it is compiled, this sees it without a device.
inline void checkCorpusEntry(gate::LanguageProcess &compiler, const std::filesystem::path &folder,
                             const std::string &file)
{
    const auto corpus = gate::readCorpus(folder);
    const auto entry = std::find_if(corpus->entries.begin(), corpus->entries.end(),
                                    [&](const gate::CorpusEntry &one) { return one.file == file; });
    const bool refused = entry->stages == std::vector{gate::Stage::Compile};
    const bool hangs = entry->deadlineSeconds > 0 && refused;
    const auto output =
        compiled(compiler, textOf(folder / entry->file), corpusWorkload(entry->workload), hangs ? 1.5 : 60);
    if (!output) {
        QVERIFY2(hangs && output.error().kind == gate::FailureKind::Timeout,
                 output.error().error.message.c_str());
        return;
    }
    QVERIFY2(output->ok != refused, output->log.c_str());
    for (const std::string &hidden : entry->hides)
        QVERIFY(output->log.find(hidden) == std::string::npos);
}

} // namespace klineage::test
