// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/shell/session.h"

#include <QCoreApplication>
#include <QFile>
#include <QFileInfo>
#include <QSettings>
#include <QStandardPaths>

namespace klineage::ui {

namespace {

constexpr int formatVersion = 1;

QString sessionText(const char *text)
{
    return QCoreApplication::translate("klineage::ui::Session", text);
}

} // namespace

QString SessionStore::defaultFile()
{
    return QStandardPaths::writableLocation(QStandardPaths::GenericConfigLocation)
           + QStringLiteral("/klineage/workbench.ini");
}

SessionStore::SessionStore(const QString &fileName)
    : m_fileName(fileName)
    , m_settings(std::make_unique<QSettings>(fileName, QSettings::IniFormat))
{}

SessionStore::~SessionStore() = default;

SessionState SessionStore::load(QStringList *messages)
{
    const bool hasContent = QFileInfo(m_fileName).size() > 0;
    const bool isDamaged = hasContent
                           && (m_settings->status() != QSettings::NoError
                               || m_settings->value(QStringLiteral("version")).toInt() != formatVersion);
    if (isDamaged) {
        const QString kept = m_fileName + QStringLiteral(".damaged");
        m_settings.reset();
        QFile::remove(kept);
        QFile::rename(m_fileName, kept);
        m_settings = std::make_unique<QSettings>(m_fileName, QSettings::IniFormat);
        if (messages)
            *messages
                << sessionText(
                       "The window's settings could not be read and start anew; the old file is kept as %1.")
                       .arg(kept);
        return {};
    }
    SessionState state;
    QSettings &s = *m_settings;
    state.geometry = s.value(QStringLiteral("window/geometry")).toByteArray();
    state.layout = s.value(QStringLiteral("window/layout"), state.layout).toString();
    state.page = s.value(QStringLiteral("window/page")).toString();
    state.theme = s.value(QStringLiteral("window/theme"), state.theme).toString();
    state.forward = s.value(QStringLiteral("window/forward")).toBool();
    state.guideDismissed = s.value(QStringLiteral("window/guideDismissed")).toBool();
    s.beginGroup(QStringLiteral("layouts"));
    for (const QString &id : s.childKeys())
        state.layoutStates[id] = s.value(id).toByteArray();
    s.endGroup();
    state.workspace = s.value(QStringLiteral("workspace/path")).toString();
    state.recentWorkspaces = s.value(QStringLiteral("workspace/recent")).toStringList();
    state.lineage = s.value(QStringLiteral("selection/lineage")).toString();
    state.row = s.value(QStringLiteral("selection/row")).toString();
    state.baseline = s.value(QStringLiteral("selection/baseline")).toString();
    state.card = s.value(QStringLiteral("selection/card")).toString();
    return state;
}

bool SessionStore::save(const SessionState &state)
{
    QSettings &s = *m_settings;
    s.setValue(QStringLiteral("version"), formatVersion);
    s.setValue(QStringLiteral("window/geometry"), state.geometry);
    s.setValue(QStringLiteral("window/layout"), state.layout);
    s.setValue(QStringLiteral("window/page"), state.page);
    s.setValue(QStringLiteral("window/theme"), state.theme);
    s.setValue(QStringLiteral("window/forward"), state.forward);
    s.setValue(QStringLiteral("window/guideDismissed"), state.guideDismissed);
    s.beginGroup(QStringLiteral("layouts"));
    s.remove(QString());
    for (auto it = state.layoutStates.cbegin(); it != state.layoutStates.cend(); ++it)
        s.setValue(it.key(), it.value());
    s.endGroup();
    s.setValue(QStringLiteral("workspace/path"), state.workspace);
    s.setValue(QStringLiteral("workspace/recent"), state.recentWorkspaces);
    s.setValue(QStringLiteral("selection/lineage"), state.lineage);
    s.setValue(QStringLiteral("selection/row"), state.row);
    s.setValue(QStringLiteral("selection/baseline"), state.baseline);
    s.setValue(QStringLiteral("selection/card"), state.card);
    s.sync();
    return s.status() == QSettings::NoError;
}

} // namespace klineage::ui
