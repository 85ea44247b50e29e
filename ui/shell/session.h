// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QByteArray>
#include <QMap>
#include <QString>
#include <QStringList>

#include <memory>

class QSettings;

namespace klineage::ui {

/// What the window remembers from one start to the next.
struct SessionState {
    QByteArray geometry;
    QString layout = QStringLiteral("review");
    QMap<QString, QByteArray> layoutStates;
    QString page; ///< of the centre
    QString workspace;
    QStringList recentWorkspaces; ///< newest first
    QString lineage;
    QString row;
    QString baseline;
    QString card;
    QString theme = QStringLiteral("system");
    bool forward = false;
    bool guideDismissed = false; ///< for good; the command brings it back
};

/// The session's file. A damaged one is kept beside itself under the name "<file>.damaged" and the session starts anew.
class SessionStore
{
public:
    explicit SessionStore(const QString &fileName = defaultFile());
    ~SessionStore();

    /// messages: what could not be read, in sentences for the user.
    [[nodiscard]] SessionState load(QStringList *messages);
    /// Returns false when the file cannot be written.
    bool save(const SessionState &state);
    /// The same file, for what else is remembered (keys).
    [[nodiscard]] QSettings &settings() { return *m_settings; }

    [[nodiscard]] static QString defaultFile();

private:
    QString m_fileName;
    std::unique_ptr<QSettings> m_settings;
};

} // namespace klineage::ui
