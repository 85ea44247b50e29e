// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/lineage/recordjobs.h"
#include "core/lineage/verify.h"
#include "tests/core/run/learnfixture.h"

namespace klineage::tests {

/// A lineage of three states that nobody derived again: K00 has no optimization, K01 opt_a, K02 opt_b too.
class LineageWorld : public LearnWorld
{
public:
    LineageWorld()
    {
        lineage::Lineage made;
        made.workload = "toy";
        made.platform = "pocl";
        made.surface = kernel::Surface::OpenCl;
        made.title = "toy, upwards";
        made.states = {
            {"K00", "K00.cl", "plain", {}}, {"K01", "K01.cl", "a", {}}, {"K02", "K02.cl", "a, b", {}}};
        made.transitions = {{"K00", "K01", "opt_a", "inner loop", "Do a.", {}},
                            {"K01", "K02", "opt_b", "inner loop", "Do b, as in `int b`.", {}}};
        write(folder + "K00.cl", toyKernel({}));
        write(folder + "K01.cl", toyKernel({"opt_a"}));
        write(folder + "K02.cl", toyKernel({"opt_a", "opt_b"}));
        std::string lines;
        std::string parent;
        for (lineage::State &state : made.states) {
            const std::string text = read(folder + state.file);
            const gate::Trial trial = gated(text, parent);
            state.trial = trial.id;
            lines += gate::writeTrial(trial) + '\n';
            parent = text;
        }
        write(folder + "trials.jsonl", lines);
        write(folder + "lineage.toml", lineage::writeLineage(made));
        write("workloads/toy/workload.toml", "# Two loops would do.\n" + read("workloads/toy/workload.toml"));
    }

    [[nodiscard]] lineage::Lineage lineage() const
    {
        Result<lineage::Lineage> found = lineage::readLineage(root() / "workloads/toy/lineages/pocl");
        if (!found || !lineage::verifyLineage(*found).ok())
            qFatal("the lineage is not sound");
        return std::move(*found);
    }
    gate::Trial gated(const std::string &text, const std::string &parent)
    {
        gate::GateRequest request;
        request.workloadDirectory = root() / "workloads/toy";
        request.candidateText = text;
        request.parentText = parent;
        return *gate.function()(request, {}, {});
    }
    /// What a batch would do with the jobs.
    std::vector<gate::Trial> gated(const std::vector<lineage::RecordJob> &jobs)
    {
        std::vector<gate::Trial> trials;
        for (const lineage::RecordJob &job : jobs)
            trials.push_back(
                gated(*files::readFile(job.candidate, 1 << 20), *files::readFile(job.parent, 1 << 20)));
        return trials;
    }

    [[nodiscard]] fs::path exchange() const { return root() / "exchange"; }
    [[nodiscard]] bool has(const std::string &name) const { return fs::exists(root() / name); }
    void reply(const std::string &stem, const std::vector<std::string> &lines) const
    {
        write("exchange/" + stem + ".reply.md", block(toyKernel(lines, "// again\n")));
    }

    const std::string folder = "workloads/toy/lineages/pocl/";
};

} // namespace klineage::tests
