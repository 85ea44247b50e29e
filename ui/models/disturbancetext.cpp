// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/models/disturbancetext.h"

#include "ui/style/format.h"

#include <QCoreApplication>

namespace klineage::ui {

namespace {

QString disturbanceText(const char *text)
{
    return QCoreApplication::translate("Disturbance", text);
}

QString wholeNumber(double value)
{
    return formatFixed(value, 0);
}

} // namespace

QString disturbanceInWords(const gate::Disturbance &disturbance)
{
    switch (disturbance.kind) {
    case gate::Disturbance::Kind::Load:
        return disturbanceText(
                   "! The machine was busy: a load of %1 on %2 threads, of which the trial makes %2 at most.")
            .arg(formatFixed(disturbance.amount, 1), wholeNumber(disturbance.of));
    case gate::Disturbance::Kind::Held:
        return disturbanceText("! The device held its clock back, for heat or for its power supply.");
    case gate::Disturbance::Kind::Unsteady:
        return disturbanceText("! The clock moved: %1 rounds were thrown away, %2 were kept.")
            .arg(wholeNumber(disturbance.amount), wholeNumber(disturbance.of));
    }
    return {};
}

QString disturbanceInBrief(const gate::Disturbance &disturbance)
{
    switch (disturbance.kind) {
    case gate::Disturbance::Kind::Load:
        return disturbanceText("! busy machine (load %1 on %2 threads)")
            .arg(formatFixed(disturbance.amount, 1), wholeNumber(disturbance.of));
    case gate::Disturbance::Kind::Held:
        return disturbanceText("! clock held back");
    case gate::Disturbance::Kind::Unsteady:
        return disturbanceText("! unsteady clock (%1 rounds thrown away, %2 kept)")
            .arg(wholeNumber(disturbance.amount), wholeNumber(disturbance.of));
    }
    return {};
}

} // namespace klineage::ui
