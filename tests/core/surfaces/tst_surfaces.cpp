// SPDX-License-Identifier: GPL-3.0-or-later
//
// The table, and what a third language on the CUDA device follows from its row.
#include "core/gate/supervisor/supervisor.h"
#include "core/kernel/candidate.h"
#include "core/kernel/outline/outline.h"
#include "core/lineage/lineage.h"
#include "core/run/journal.h"
#include "core/skills/card.h"
#include "core/talk/reply.h"
#include "core/trial/requestjson.h"

#include "../trialfixture.h"
#include "tests/paths.h"
#include "toy.h"

#include <QtTest>

#include <set>

using namespace klineage;
using kernel::Surface;

namespace {

const std::string binaries = klineage::test::programPath();

const char *const workloadText = R"(
name = "copy"
title = "Copy"
axes = ["R", "C"]
flops = "R * C"
bytes = "8 * R * C"
[[tensor]]
name = "x"
role = "input"
dtype = "f32"
shape = ["R", "C"]
[[tensor]]
name = "y"
role = "output"
dtype = "f32"
shape = ["R", "C"]
[[case]]
name = "timed"
axes = { R = 4, C = 8 }
[oracle]
name = "softmax_rows"
args = { in = "x", out = "y" }
[[reference]]
surface = "cuda"
provider = "cudnn"
op = "softmax_rows"
args = { in = "x", out = "y", rows = "R", cols = "C" }
)";

std::string toyText(const std::string &code = "copy x to y\n")
{
    return "(*klineage\nsurface = \"toy\"\n\n[[tensormap]]\nname = \"map\"\ntensor = \"x\"\nbox = [4, 8]\n\n"
           "[[launch]]\nkernel = \"copy\"\ngrid = [1]\nblock = [32]\nshared = 128\nargs = [\"map\", \"y\"]\n*)\n"
           + code;
}

std::string messageOf(const Result<kernel::Candidate> &candidate)
{
    return candidate ? "" : candidate.error().message;
}

/// A supervisor whose worker is a fake for any device, and whose compiler process knows the toy alone.
gate::SupervisorOptions options()
{
    gate::SupervisorOptions options;
    options.workerCommand = {binaries + "/klineage-fakeworker", "memory"};
    options.compilerCommand = {binaries + "/klineage-toycompiler"};
    options.trustedKernel = false; // the fake computes nothing
    return options;
}

gate::GateJob jobOf(const std::string &text)
{
    gate::GateJob job;
    job.workload = *workload::parseWorkload(workloadText, "workload.toml");
    job.request.candidateText = text;
    job.request.candidateName = "K00.toy";
    job.request.deadlineSeconds = 60;
    return job;
}

std::string evidenceOf(const gate::Trial &trial, const std::string &name)
{
    for (const gate::Evidence &evidence : trial.verdict.evidence) {
        if (evidence.name == name)
            return evidence.value;
    }
    return {};
}

} // namespace

class TestSurfaces : public QObject
{
    Q_OBJECT
private slots:
    void rowsAreDistinct()
    {
        std::set<std::string> words;
        std::set<std::string> extensions;
        for (const Surface surface : kernel::allSurfaces()) {
            QVERIFY(words.insert(kernel::toString(surface)).second);
            const bool isFirst = extensions.insert(surface.language().extension).second;
            QVERIFY(isFirst || surface == Surface::Tilelang); // which has Triton's, and a plan that says so
            QVERIFY(kernel::surfaceFromString(kernel::toString(surface)) == surface);
            QVERIFY((kernel::surfaceOfFile(std::string("a/b") + surface.language().extension) == surface)
                    == isFirst);
        }
        QVERIFY(!kernel::surfaceFromString("toy"));
        QVERIFY(!kernel::surfaceOfFile("K00.toy"));
        for (const kernel::DeviceTraits &device : kernel::deviceTable())
            QVERIFY(kernel::deviceFromString(device.word) == device.kind);
    }

    void theSurfaceWithoutANameRunsAnywhere() { QVERIFY(Surface().device().isHost); }

    void platformsOfADevice_data()
    {
        QTest::addColumn<QString>("platform");
        QTest::addColumn<QString>("device");
        QTest::addColumn<int>("capability");
        QTest::addColumn<QString>("target"); // of a CUDA compiler
        QTest::newRow("sm90") << "sm90"
                              << "cuda" << 90 << "sm_90a";
        QTest::newRow("sm80") << "sm80"
                              << "cuda" << 80 << "sm_80";
        QTest::newRow("underscore") << "sm_100"
                                    << "cuda" << 100 << "sm_100a";
        QTest::newRow("a target") << "sm_90a"
                                  << "cuda" << 90 << "sm_90a";
        QTest::newRow("pocl") << "pocl"
                              << "opencl" << 0 << "sm_90a";
        QTest::newRow("opencl") << "opencl-rocm"
                                << "opencl" << 0 << "sm_90a";
        QTest::newRow("none") << "none"
                              << "" << 0 << "sm_90a";
        QTest::newRow("empty") << ""
                               << "" << 0 << "sm_90a";
        QTest::newRow("no number") << "sm"
                                   << "" << 0 << "sm_90a";
        QTest::newRow("a word") << "sm90x"
                                << "" << 0 << "sm_90a";
        QTest::newRow("small") << "sm9"
                               << "" << 0 << "sm_90a";
        QTest::newRow("negative") << "sm-90"
                                  << "" << 0 << "sm_90a";
        QTest::newRow("endless") << "sm99999999999999999999"
                                 << "" << 0 << "sm_90a";
    }
    void platformsOfADevice()
    {
        QFETCH(QString, platform);
        QFETCH(QString, device);
        QFETCH(int, capability);
        QFETCH(QString, target);
        const std::string text = platform.toStdString();
        const auto found = kernel::deviceOfPlatform(text);
        QCOMPARE(QString(found ? kernel::toString(*found) : ""), device);
        QCOMPARE(kernel::computeCapability(text).value_or(0), capability);
        QCOMPARE(QString::fromStdString(Surface::Cuda.device().target(text)), target);
    }

    void languagesByAnyName()
    {
        const auto wordOf = [](const char *name) {
            const auto language = kernel::languageCalled(name);
            return std::string(language ? language->word : "");
        };
        for (const char *name : {"cuda", "CUDA C++", "cu", "c++", "CPP", "cuda_cpp"})
            QCOMPARE(wordOf(name), std::string("cuda"));
        for (const char *name : {"opencl", "OpenCL C", "CL"})
            QCOMPARE(wordOf(name), std::string("opencl"));
        QCOMPARE(wordOf("Triton"), std::string("triton"));
        QCOMPARE(wordOf("TileLang"), std::string("tilelang"));
        QCOMPARE(wordOf("toy"), std::string());
        QCOMPARE(wordOf(""), std::string());
        const kernel::ExtraSurface toy(test::toyRow);
        QCOMPARE(wordOf("Toy"), std::string("toy"));
    }

    void codeTellsItsSurface()
    {
        QVERIFY(kernel::surfaceOfCode("__kernel void f(__global float *x) {}") == Surface::OpenCl);
        QVERIFY(kernel::surfaceOfCode("extern \"C\" __global__ void f(float *x) {}") == Surface::Cuda);
        QVERIFY(kernel::surfaceOfCode("copy x to y") == Surface::Cuda);
        for (const kernel::DeviceTraits &device : kernel::deviceTable())
            QVERIFY(kernel::surfaceOn(device.kind)->device == device.kind);
    }

    /// A third language that is like C is outlined by what its row says, one that is not has no kernels.
    void outlinesOfARow()
    {
        static constexpr kernel::Dialect dialect = {"launched", "", "launched", false, false};
        kernel::SurfaceRow row = test::toyRow;
        row.dialect = &dialect;
        const std::string code = "launched void copy(const float *x, float *y) { y[threadIdx.y] = x[0]; }\n";
        {
            const kernel::ExtraSurface plain(test::toyRow);
            QVERIFY(kernel::outlineSource(code, plain.surface()).kernels.empty());
        }
        const kernel::ExtraSurface toy(row);
        const kernel::SourceOutline outline = kernel::outlineSource(code, toy.surface());
        QCOMPARE(outline.kernels.size(), std::size_t{1});
        QCOMPARE(outline.kernels[0].name, std::string("copy"));
        QCOMPARE(outline.kernels[0].problem, std::string());
        QCOMPARE(outline.kernels[0].blockRank, 2);
        QVERIFY(kernel::surfaceOfCode(code) == toy.surface());
    }

    void candidatesOfARow()
    {
        QVERIFY(messageOf(kernel::parseCandidate(toyText(), "K00.toy"))
                    .find("expected the file to begin with '/*klineage'")
                != std::string::npos);
        const kernel::ExtraSurface toy(test::toyRow);
        const auto candidate = kernel::parseCandidate(toyText(), "K00.toy");
        QVERIFY2(candidate.has_value(), messageOf(candidate).c_str());
        QVERIFY(candidate->surface == toy.surface());
        QCOMPARE(std::string(kernel::codeOf(*candidate)), std::string("copy x to y\n"));
        // What its device has decides what its plan may say.
        QCOMPARE(candidate->tensorMaps.size(), std::size_t{1});
        const auto again =
            kernel::parseCandidate(kernel::joinCandidate(candidate->surface, kernel::writePlan(*candidate),
                                                         kernel::codeOf(*candidate)),
                                   "again.toy");
        QVERIFY2(again.has_value(), messageOf(again).c_str());
        QCOMPARE(kernel::writePlan(*again), kernel::writePlan(*candidate));
        // Its plan lies in a comment of its own kind, and in no other's.
        std::string wrapped = toyText();
        wrapped.replace(0, 2, "/*");
        wrapped.replace(wrapped.find("*)\n"), 2, "*/");
        QCOMPARE(
            messageOf(kernel::parseCandidate(wrapped, "K00.toy")),
            std::string("K00.toy:1:1: the surface 'toy' has its plan in a comment of its own kind; expected "
                        "'(*klineage'."));
        const auto reading = policy::readCandidateReply("Here it is.\n```toy\n" + toyText() + "```\n");
        QVERIFY2(reading.has_value(), reading ? "" : reading.error().message.c_str());
        QCOMPARE(reading->text, toyText());
    }

    void filesOfARow()
    {
        const kernel::ExtraSurface toy(test::toyRow);
        const std::string sha(64, 'a');
        QCOMPARE(lineage::branchFileName(sha, toy.surface()), std::string("branches/aaaaaaaaaaaa.toy"));
        QCOMPARE(run::candidateFileName(sha, toy.surface()), std::string("candidates/aaaaaaaaaaaa.toy"));
        QCOMPARE(skills::carrierName(toy.surface().language()), std::string("carrier.toy"));
        const std::string text = "workload = \"w\"\nplatform = \"p\"\nsurface = \"toy\"\ntitle = \"t\"\n"
                                 "[[state]]\nid = \"K00\"\nfile = \"K00.toy\"\ntitle = \"first\"\n";
        const auto lineage = lineage::parseLineage(text, "lineage.toml");
        QVERIFY2(lineage.has_value(), lineage ? "" : lineage.error().message.c_str());
        QVERIFY(lineage->surface == toy.surface());
        QVERIFY(lineage::writeLineage(*lineage).find("surface = \"toy\"") != std::string::npos);
    }

    void trialsOfARow()
    {
        const kernel::ExtraSurface toy(test::toyRow);
        gate::Trial trial = tests::makeTrial("0123456789abcdef", "text");
        trial.surface = toy.surface();
        const auto read = gate::parseTrial(gate::writeTrial(trial), "trials.jsonl:1");
        QVERIFY2(read.has_value(), read ? "" : read.error().message.c_str());
        QVERIFY(read->surface == toy.surface());
    }

    void itsCompilerAndItsWorkerAreChosen()
    {
        const kernel::ExtraSurface toy(test::toyRow);
        gate::Supervisor supervisor(options());
        const auto trial = supervisor.gate(jobOf(toyText()));
        QVERIFY2(trial.has_value(), trial ? "" : trial.error().message.c_str());
        // The fake worker loads the binary, and computes nothing with it.
        QVERIFY2(trial->verdict.status == gate::VerdictStatus::Wrong, trial->verdict.message.c_str());
        QVERIFY(trial->surface == toy.surface());
        QCOMPARE(trial->file, std::string("K00.toy"));
        QCOMPARE(trial->environment.facts.at("compiler"), std::string("toy 1.0"));
        QVERIFY(supervisor.workerPid(kernel::DeviceKind::Cuda) > 0);
        QCOMPARE(supervisor.workerPid(kernel::DeviceKind::OpenCl), -1);
        // The device's oracle is asked, whatever the language is.
        QVERIFY(!evidenceOf(*trial, "oracle").empty());
    }

    void whatItsCompilerSays()
    {
        const kernel::ExtraSurface toy(test::toyRow);
        gate::Supervisor supervisor(options());
        const auto trial = supervisor.gate(jobOf(toyText("copy\nERROR\n")));
        QVERIFY2(trial.has_value(), trial ? "" : trial.error().message.c_str());
        QCOMPARE(trial->verdict.status, gate::VerdictStatus::CompileError);
        QCOMPARE(evidenceOf(*trial, "compiler"), std::string("toy 1.0"));
        QCOMPARE(evidenceOf(*trial, "source"), std::string("ERROR"));
    }

    void aLanguageThatNobodyCompiles()
    {
        kernel::SurfaceRow row = test::toyRow;
        row.language.word = "other";
        const kernel::ExtraSurface other(row);
        std::string text = toyText();
        text.replace(text.find("\"toy\""), 5, "\"other\"");
        gate::Supervisor supervisor(options());
        const auto trial = supervisor.gate(jobOf(text));
        if (trial)
            QCOMPARE(trial->verdict.status, gate::VerdictStatus::Unavailable);
        const std::string message = trial ? trial->verdict.message : trial.error().message;
        QVERIFY2(message.find("There is no compiler for 'other' here.") != std::string::npos,
                 message.c_str());
    }
};

QTEST_GUILESS_MAIN(TestSurfaces)
#include "tst_surfaces.moc"
