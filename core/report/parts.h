// SPDX-License-Identifier: GPL-3.0-or-later
// Internal to the room: parts of a report.
#pragma once

#include "core/report/document.h"
#include "core/run/summary.h"
#include "core/workspace/workspace.h"

namespace klineage::report {

/// Where trials ran and when: each fact once, with all of its values, or their range.
void addEnvironment(Facts &facts, const std::vector<const gate::Trial *> &trials);

/// The cards that transitions of the lineage carry, with what they claim and where they were proven.
[[nodiscard]] Table cardTable(const Workspace &workspace, const lineage::Lineage &lineage);

/// The workload: tensors, timed case, cases, tolerance. Nothing where the workspace has it not.
void addContract(Document &document, const Workspace &workspace, const lineage::Lineage &lineage);

/// The trials of states and attempts: when, on which seeds, how far they can be trusted.
[[nodiscard]] Table trialTable(const lineage::Lineage &lineage);

/// The three steps that gained most, each with its causes from counters; steps whose trials kept too little say so.
void addExplanations(Document &document, const Workspace &workspace, const lineage::Lineage &lineage);

/// The states under the ceilings of the device, as a picture and as a table. Nothing where no ceilings were recorded.
void addRoofline(Document &document, const lineage::Lineage &lineage);

/// What came of roundtrips of the lineage, as a picture and counted by arm. Nothing where none is recorded.
void addRoundtrips(Document &document, const lineage::Lineage &lineage);

/// How to look again: in the workspace's folder, with the programs of this project on PATH.
[[nodiscard]] Commands lineageCommands(const lineage::Lineage &lineage);

/// With its interval where its trial was paired with the reference (or, as a child, with the root); else "1.2×, not paired".
[[nodiscard]] std::string finalSpeedupText(const run::RunRecord &run, const run::Summary &summary);

} // namespace klineage::report
